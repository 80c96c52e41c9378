// SPDX-License-Identifier: Apache-2.0
// Holds mxfp4_quantizer against what `mx vectors -r mxfp4 --hex DIR` writes: scale and codes of every
// block. Prints PASS, or FAIL with the first differences. Parameters are set by run.sh.
`timescale 1ns / 1ns
module mxfp4_quantizer_tb;
    parameter BLOCKS = 240;
    parameter N = 32;

    reg [31:0] inputs [0:BLOCKS*N-1];
    reg [7:0]  scales [0:BLOCKS-1];
    reg [3:0]  expected [0:BLOCKS*N-1];

    reg  [32*N-1:0] x, block;
    wire [7:0]      scale;
    wire [4*N-1:0]  codes;
    mxfp4_quantizer #(.N(N)) dut (.x(x), .scale(scale), .codes(codes));

    integer b, i, differences;
    initial begin
        $readmemh("hex/input.hex", inputs);
        $readmemh("hex/scale.hex", scales);
        $readmemh("hex/codes.hex", expected);
        differences = 0;
        for (b = 0; b < BLOCKS; b = b + 1) begin
            for (i = 0; i < N; i = i + 1) block[32*i +: 32] = inputs[b*N + i];
            x <= block;
            #1;
            if (scale !== scales[b]) begin
                differences = differences + 1;
                if (differences <= 10)
                    $display("block %0d: scale %h, expected %h", b, scale, scales[b]);
            end
            // A NaN scale makes every element NaN, whatever its code.
            for (i = 0; i < N && scales[b] !== 8'hff; i = i + 1)
                if (codes[4*i +: 4] !== expected[b*N + i]) begin
                    differences = differences + 1;
                    if (differences <= 10)
                        $display("block %0d element %0d: %h gives code %h, expected %h", b, i,
                                 inputs[b*N + i], codes[4*i +: 4], expected[b*N + i]);
                end
        end
        if (differences == 0) $display("PASS: %0d blocks of %0d elements", BLOCKS, N);
        else $display("FAIL: %0d differences", differences);
        $finish;
    end
endmodule
